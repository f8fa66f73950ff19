"""Times as people say them: strict ISO, and a small grammar of plain words that refuses what could mean two things."""

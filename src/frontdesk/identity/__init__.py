"""Who is calling, what they may do, and what we say of ourselves to others."""

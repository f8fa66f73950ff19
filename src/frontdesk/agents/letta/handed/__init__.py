"""Tools of the catalogue that were handed to agents of a Letta server, and how Letta comes to know them."""

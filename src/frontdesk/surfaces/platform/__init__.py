"""The local platform on the wire: discovery, tool servers, chat, tokens, and what shows and breaks them."""

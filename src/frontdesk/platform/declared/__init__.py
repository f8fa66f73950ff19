"""What a manifest declares: servers and tools, read with everything that is wrong with them."""

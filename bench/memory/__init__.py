"""How well people's memories are found again, and how quickly, also among a million of them."""

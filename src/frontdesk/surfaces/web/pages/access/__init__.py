"""Access: who may come in, who was turned away, and who still says who they are the old way."""

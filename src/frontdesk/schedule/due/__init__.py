"""What is due: claimed under a lease, kept alive, settled by whoever still holds it."""

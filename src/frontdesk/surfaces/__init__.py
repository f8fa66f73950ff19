"""The doors: each protocol in a folder of its own, all of them thin."""

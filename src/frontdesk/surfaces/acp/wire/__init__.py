"""Frames of JSON-RPC in and out, whatever carries them."""

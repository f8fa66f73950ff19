"""The Letta host: agents on a Letta V1 server or Letta Cloud."""

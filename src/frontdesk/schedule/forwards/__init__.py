"""Agents' answers on their way to webhooks: kept until taken or given up, signed, and sent to public addresses."""

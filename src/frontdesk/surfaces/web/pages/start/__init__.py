"""Start: how does one get from nothing to an agent that answers?"""

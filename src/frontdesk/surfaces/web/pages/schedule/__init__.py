"""Schedule: what comes, and what became of what came?"""

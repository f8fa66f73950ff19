"""What is kept for each person: tasks, memories, activities, timeline and time, and the work queue of their agents."""

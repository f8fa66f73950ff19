"""What a memory hangs on: tasks, activities and other items."""

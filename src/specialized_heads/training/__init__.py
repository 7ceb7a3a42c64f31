"""Training: batches, objective, schedule and the loop that can be killed at any moment."""

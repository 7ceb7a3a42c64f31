"""Training: batches, objective, schedule, optimisers and the resumable loop."""

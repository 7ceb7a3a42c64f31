"""BERT and its tasks (Michel et al. 2019): data, pre-training, fine-tuning, scores; heads are
handled by `pruning`."""

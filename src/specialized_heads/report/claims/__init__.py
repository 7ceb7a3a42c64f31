"""The claims of both papers, judged by the results of an experiment.

`evidence` holds the results of a corpus, `of_scores`, `of_heads` and `of_ablation` measure claims on it, `claim` judges a
measured value, `voita` and `michel` list the claims of the two papers, and `table` is the stage that judges all of them.
"""

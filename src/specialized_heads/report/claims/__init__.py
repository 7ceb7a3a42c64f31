"""The claims of both papers beside what an experiment shows: what is claimed, how it is measured, what follows.

`evidence` is what an experiment has to show for a corpus, `claim` what a claim is and how it is judged, `voita` and
`michel` the claims of the two papers, and `table` the stage that judges them all.
"""

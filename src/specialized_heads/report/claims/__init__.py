"""The claims of both papers, judged by the results of an experiment."""

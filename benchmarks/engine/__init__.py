"""How fast the engine trains and translates, beside other implementations of the same model:
`python -m benchmarks.engine`."""

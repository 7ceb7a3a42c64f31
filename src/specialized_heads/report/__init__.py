"""The figures and tables of an experiment, with the numbers that the papers report beside its own.

Each module has two functions: `numbers` collects what is shown in one table, `draw` (or `shown`, for a table) presents
exactly that. The numbers are written as CSV beside the figure or table.
"""

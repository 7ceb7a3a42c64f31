"""The figures and tables of an experiment, with the numbers that the papers report beside its own.

All are functions of five tables (`data`). Claims and figures import what is in this folder, and
figures also claims.
"""

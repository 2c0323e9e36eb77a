"""Figures and tables of the papers, made again: one file each."""

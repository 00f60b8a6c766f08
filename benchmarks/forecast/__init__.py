"""Predictions beside measurements: products and programs that were held out."""

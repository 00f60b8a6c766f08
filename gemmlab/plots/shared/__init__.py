"""All plots are made of this: style, figures, and words that describe them."""

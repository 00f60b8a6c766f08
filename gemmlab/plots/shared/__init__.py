"""What all plots are made of: style, figures, their descriptions."""

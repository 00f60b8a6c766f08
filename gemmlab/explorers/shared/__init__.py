"""What all explorers are made of: controls, pictures, and work that runs beside them."""

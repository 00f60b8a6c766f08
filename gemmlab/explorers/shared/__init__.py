"""All explorers are made of these: controls, pictures, and work that runs beside them."""

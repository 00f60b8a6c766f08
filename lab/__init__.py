"""The course in JupyterLab: a working copy of the notebooks, and how the server is started."""

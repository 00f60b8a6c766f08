"""The limit of power is measured: what each kind of work costs, and what clock it leaves."""

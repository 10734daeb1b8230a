"""Models on servers: one way to ask them, and what each kind of server does differently."""

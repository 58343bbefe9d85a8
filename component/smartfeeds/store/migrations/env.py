"""What alembic runs to reach the database: the connection is given by `migrations.run`, which owns the transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()

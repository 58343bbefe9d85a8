-- For compose.prosody.yaml. Replace example.org, and see Prosody's manual for certificates.
modules_enabled = { "roster", "saslauth", "tls", "dialback", "disco", "ping", "time", "version", "posix" }
authentication = "internal_hashed"
component_interfaces = { "*" }
component_ports = { 5347 }
log = { info = "*console" }

VirtualHost "example.org"

Component "feeds.example.org"
    component_secret = ENV_SECRET

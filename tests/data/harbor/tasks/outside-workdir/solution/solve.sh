#!/bin/bash
echo maintenance >/etc/motd; mkdir -p /var/lib/maintenance; date >/var/lib/maintenance/since

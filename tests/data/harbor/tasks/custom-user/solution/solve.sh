#!/bin/bash
echo done >"$REPORT_NAME"

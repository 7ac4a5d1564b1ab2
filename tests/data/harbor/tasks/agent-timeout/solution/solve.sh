#!/bin/bash
echo early >early; sleep 1000

#!/bin/bash
cp ready copy

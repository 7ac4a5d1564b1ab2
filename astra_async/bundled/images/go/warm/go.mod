module warm

go 1.19

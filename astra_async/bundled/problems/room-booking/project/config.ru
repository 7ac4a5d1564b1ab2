require_relative "config/application"

Rails.application.initialize!
load Rails.root.join("db/schema.rb") unless ActiveRecord::Base.connection.table_exists?("rooms")
run Rails.application

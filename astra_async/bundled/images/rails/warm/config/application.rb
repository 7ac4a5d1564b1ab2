require_relative "boot"

require "rails"
require "active_record/railtie"
require "action_controller/railtie"

require "bcrypt"
require "jwt"

# Loads what the problems of this set load, so that it is compiled when a run starts.
module Warm
  class Application < Rails::Application
    config.load_defaults 6.1
    config.api_only = true
    config.eager_load = false
    config.secret_key_base = "nothing-to-hide"
    config.log_level = :warn
  end
end

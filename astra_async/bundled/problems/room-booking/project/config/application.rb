ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)

require "bundler/setup"
require "bootsnap/setup"
require "rails"
require "active_record/railtie"
require "action_controller/railtie"

ENV["DATABASE_URL"] ||= Rails.env.test? ? "sqlite3::memory:" : "sqlite3:db/#{Rails.env}.sqlite3"

module RoomBooking
  class Application < Rails::Application
    config.load_defaults 6.1
    config.api_only = true
    config.eager_load = Rails.env.production?
    config.time_zone = "UTC"
    config.secret_key_base = ENV.fetch("SECRET_KEY_BASE", "for-development-only")
    config.consider_all_requests_local = Rails.env.development?
    config.log_level = :warn
  end
end

ENV["RAILS_ENV"] = "test"
require_relative "../config/application"

Rails.application.initialize!
require "rspec/rails"

ActiveRecord::Schema.verbose = false
load Rails.root.join("db/schema.rb")

# What the request specs share: two rooms, and bookings on Monday, 11 March 2024.
module Office
  def self.included(group)
    group.let!(:oak) { Room.create!(name: "Oak", capacity: 8) }
    group.let!(:elm) { Room.create!(name: "Elm", capacity: 20) }
  end

  def at(time, day: "2024-03-11")
    "#{day}T#{time}:00Z"
  end

  def booked(room, from, to, day: "2024-03-11", **more)
    Booking.create!(
      { room_id: room.id, title: "Stand-up", organiser: "Ada", attendees: 3,
        starts_at: at(from, day: day), ends_at: at(to, day: day) }.merge(more)
    )
  end

  def book(room, from, to, **more)
    fields = { title: "Review", organiser: "Grace", attendees: 4, starts_at: at(from), ends_at: at(to) }
    post "/rooms/#{room.id}/bookings", params: fields.merge(more), as: :json
  end

  def answer
    [response.status, response.body.empty? ? nil : JSON.parse(response.body)]
  end
end

RSpec.configure do |config|
  config.include Office, type: :request
  config.use_transactional_fixtures = true
  config.infer_spec_type_from_file_location!
end

# A room in somebody's hands from starts_at until ends_at; the end itself is free again.
class Booking < ApplicationRecord
  belongs_to :room
end

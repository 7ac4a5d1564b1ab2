# A room in somebody's hands from starts_at until ends_at; the end itself is free again.
class Booking < ApplicationRecord
  belongs_to :room

  scope :active, -> { where(cancelled: false) }
  scope :overlapping, ->(from, to) { where("starts_at < ? AND ends_at > ?", to, from) }

  validates :title, :organiser, :attendees, :starts_at, :ends_at, presence: true

  def conflicts
    room.bookings.active.overlapping(starts_at, ends_at).order(:starts_at)
  end

  def as_answer
    slice(:id, :title, :organiser, :attendees)
      .merge(room: room.name, starts_at: starts_at.iso8601, ends_at: ends_at.iso8601)
  end
end

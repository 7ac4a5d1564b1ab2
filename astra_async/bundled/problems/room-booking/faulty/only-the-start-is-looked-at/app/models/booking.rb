# A room in somebody's hands from starts_at until ends_at; the end itself is free again.
class Booking < ApplicationRecord
  OPENS = 8.hours
  CLOSES = 18.hours

  belongs_to :room

  scope :active, -> { where(cancelled: false) }
  scope :overlapping, ->(from, _to) { where("starts_at <= ? AND ends_at > ?", from, from) }

  validates :title, :organiser, :starts_at, :ends_at, presence: true
  validates :attendees, numericality: { only_integer: true, greater_than: 0 }
  validate :fits_into_the_room
  validate :ends_after_its_start
  validate :lies_within_the_opening_hours

  def conflicts
    room.bookings.active.overlapping(starts_at, ends_at).order(:starts_at)
  end

  def as_answer
    slice(:id, :title, :organiser, :attendees)
      .merge(room: room.name, starts_at: starts_at.iso8601, ends_at: ends_at.iso8601)
  end

  private

  def fits_into_the_room
    return unless room && attendees && attendees > room.capacity

    errors.add(:attendees, "exceeds the capacity of the room")
  end

  def ends_after_its_start
    errors.add(:ends_at, "must be after the start") if starts_at && ends_at && ends_at <= starts_at
  end

  def lies_within_the_opening_hours
    return unless starts_at && ends_at

    day = starts_at.beginning_of_day
    return if starts_at >= day + OPENS && ends_at <= day + CLOSES

    errors.add(:starts_at, "is outside the opening hours")
  end
end

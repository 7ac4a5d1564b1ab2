class BookingsController < ApplicationController
  FIELDS = %i[title organiser attendees starts_at ends_at].freeze
  WEEKS = (1..52).freeze

  def create
    first = room.bookings.new(params.permit(*FIELDS))
    first.valid?
    first.errors.add(:weeks, "must be from 1 to 52") unless WEEKS.include?(weeks)
    return render_invalid(first.errors) if first.errors.any?

    store(Array.new(weeks) { |week| first.in_weeks(week) }, :created)
  end

  private

  def room
    @room ||= Room.find(params[:room_id])
  end

  def weeks
    params.fetch(:weeks, 1).to_s[/\A[0-9]+\z/].to_i
  end

  # Saves all of the bookings or, if one of them is in the way of others, none.
  def store(bookings, status)
    conflicts = Booking.transaction do
      found = bookings.flat_map { |booking| booking.conflicts.to_a }.uniq.sort_by(&:starts_at)
      bookings.each(&:save!) if found.empty?
      found
    end
    return render json: bookings.first.as_answer, status: status if conflicts.empty?

    render json: { error: "Room is taken", conflicts: conflicts.map(&:id) }, status: :conflict
  end

  def render_invalid(errors)
    render json: { errors: errors }, status: :unprocessable_entity
  end
end

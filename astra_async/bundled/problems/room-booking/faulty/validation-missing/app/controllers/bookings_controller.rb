class BookingsController < ApplicationController
  FIELDS = %i[title organiser attendees starts_at ends_at].freeze
  WEEKS = (1..52).freeze

  def index
    bookings = room.bookings.active.order(:starts_at)
    page = Page.new(bookings, params)
    return render json: { error: "Invalid page" }, status: :bad_request unless page.valid?

    render json: { bookings: page.records.includes(:room).map(&:as_answer), **page.about }
  end

  def create
    first = room.bookings.new(params.permit(*FIELDS))
    return render_invalid(first.errors) if first.invalid?

    store(Array.new(weeks) { |week| first.in_weeks(week) }, :created)
  end

  def update
    booking = Booking.active.find(params[:id])
    booking.assign_attributes(params.permit(*FIELDS))
    return render_invalid(booking.errors) if booking.invalid?

    store([booking], :ok)
  end

  def destroy
    Booking.active.find(params[:id]).update_column(:cancelled, true)
    head :no_content
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

class BookingsController < ApplicationController
  PER_PAGE = 10
  MAXIMUM = 50

  def index
    page = whole(params.fetch(:page, 1))
    per_page = whole(params.fetch(:per_page, PER_PAGE))&.clamp(1, MAXIMUM)
    return render json: { error: "Invalid page" }, status: :bad_request unless page && per_page

    all = room.bookings.active.order(:starts_at)
    shown = all.limit(per_page).offset((page - 1) * per_page)
    pages = (all.count.to_f / per_page).ceil
    render json: { bookings: shown.map(&:as_answer), page: page, per_page: per_page, total: all.count, pages: pages }
  end

  def create
    booking = room.bookings.new(params.permit(:title, :organiser, :attendees, :starts_at, :ends_at))
    return render json: { errors: booking.errors }, status: :unprocessable_entity if booking.invalid?

    conflicts = booking.conflicts.ids
    return render json: { error: "Room is taken", conflicts: conflicts }, status: :conflict if conflicts.any?

    booking.save!
    render json: booking.as_answer, status: :created
  end

  def destroy
    Booking.active.find(params[:id]).update_column(:cancelled, true)
    head :no_content
  end

  private

  def room
    @room ||= Room.find(params[:room_id])
  end

  # The number, or nil where there is no whole number from 1.
  def whole(value)
    value.to_s.match?(/\A[1-9][0-9]*\z/) ? value.to_i : nil
  end
end

class BookingsController < ApplicationController
  def create
    booking = room.bookings.new(params.permit(:title, :organiser, :attendees, :starts_at, :ends_at))
    return render json: { errors: booking.errors }, status: :unprocessable_entity if booking.invalid?

    conflicts = room.bookings_between(booking.starts_at, booking.ends_at).ids
    return render json: { error: "Room is taken", conflicts: conflicts }, status: :conflict if conflicts.any?

    booking.save!
    render json: booking.as_answer, status: :created
  end

  private

  def room
    @room ||= Room.find(params[:room_id])
  end
end

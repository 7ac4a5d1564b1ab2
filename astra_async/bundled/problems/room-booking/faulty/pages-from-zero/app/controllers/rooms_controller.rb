class RoomsController < ApplicationController
  def index
    rooms = Room.order(:name)
    rooms = rooms.where("capacity >= ?", params[:capacity].to_i) if params[:capacity].present?
    if params[:from].present? && params[:to].present?
      taken = Booking.active.overlapping(params[:from].to_time(:utc), params[:to].to_time(:utc))
      rooms = rooms.where.not(id: taken.select(:room_id))
    end
    render json: rooms.map { |room| room.slice(:id, :name, :capacity) }
  end
end

class RoomsController < ApplicationController
  def index
    render json: Room.order(:name).map { |room| room.slice(:id, :name, :capacity) }
  end
end
